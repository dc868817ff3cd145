from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pandas as pd
import pytest
from ledger_samples import certificate, publish, publish_release, reserve, sealed, standing
from thorough import thinned

from pkdp_pipeline.errors import ArgumentError, DifferencingError, LedgerError, TemporaryError
from pkdp_pipeline.ledger import Ledger
from pkdp_pipeline.ledger.chain import GENESIS
from pkdp_pipeline.ledger.database import while_waiting
from pkdp_pipeline.ledger.records import Records
from pkdp_pipeline.model.evidence import IndependentGivenHabits

HABITS = IndependentGivenHabits()
# One server for all of them: a worker of its own keeps them together.
pytestmark = [pytest.mark.postgres, pytest.mark.xdist_group("postgres")]


@pytest.fixture
def connect(postgres_url):
    """Return a connection of another program's, which sees the ledger's tables."""
    import psycopg

    opened = psycopg.connect(postgres_url, autocommit=True, options="-c search_path=pkdp")
    yield opened
    opened.close()


def test_a_release_is_charged_published_found_and_replayed(postgres_url):
    with Ledger.open(postgres_url, dataset="Flights") as ledger:
        assert (ledger.head(), list(ledger.entries())) == (GENESIS, [])
        reservation = reserve(ledger)
        assert ledger.find("key") is None
        with pytest.raises(DifferencingError):
            reserve(ledger, "another", standing("another"))
        entry, replayed = ledger.publish(reservation, b"\x00\xff", "release")
        assert (entry.content, replayed) == (b"\x00\xff", False)
        assert publish(ledger, content=b"other") == (entry, True)
    with Ledger.open(postgres_url, dataset=" flights") as ledger:
        assert ledger.dataset == "Flights"
        assert ledger.find("key") == entry
        assert ledger.beside(standing(period="2013")) == [entry]
        ledger.verify(ledger.head(), contents=False)


def test_everything_the_ledger_does_works_here_too(postgres_url):
    with Ledger.open(postgres_url, evidence=HABITS) as ledger:
        first = publish_release(ledger, "first")
        for day in range(3, 40):
            publish_release(ledger, f"day {day}", standing(period=f"{1900 + day}-01-02"))
        ledger.give_back(reserve(ledger, "back", standing(period="2021")))
        reserve(ledger, "left", standing(period="2022"))
        text = certificate().with_caveats("Somebody else asked.").to_json()
        again = ledger.recertify(first, text, sealed(text).id, sealed(text).to_bytes())
        assert ledger.find("first") == again
        assert len(list(ledger.entries())) == 39
        assert len(list(ledger.entries(given_back=True))) == 40
        assert ledger.total("tailnum").delta(1.0) > certificate().delta(1.0)
        for head in (GENESIS, first.hash, ledger.head()):
            ledger.verify(head)
        with pytest.raises(LedgerError, match="cut off"):
            ledger.verify("f" * 64)


def test_the_chain_is_the_same_as_in_sqlite(postgres_url, path):
    chains = []
    for location in (postgres_url, path):
        with Ledger.open(location) as ledger:
            publish(ledger, content=b"\x00\xff", what=standing('ünï "quoted"'))
            chains.append(list(ledger.records.events()))
    for mine, other in zip(*chains, strict=True):
        for name in mine.__dataclass_fields__:
            if name not in ("created_at", "previous", "hash"):
                assert getattr(mine, name) == getattr(other, name)


@pytest.mark.parametrize("change", ["UPDATE event SET key = 'x'", "DELETE FROM event", "TRUNCATE event CASCADE"])
def test_events_are_append_only(postgres_url, connect, change):
    import psycopg

    with Ledger.open(postgres_url) as ledger:
        publish(ledger)
    with pytest.raises(psycopg.IntegrityError, match="append-only"):
        connect.execute(change)


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE event SET content = 'other' WHERE sequence = 2",
        "UPDATE event SET certificate = replace(certificate, '50', '51') WHERE sequence = 1",
        "DELETE FROM event WHERE sequence = 4",
        "UPDATE entry SET state = 'given_back', published = NULL, content = NULL WHERE id = 1",
        "DELETE FROM entry WHERE id = 3",
        "UPDATE entry SET last_day = last_day + 1",
        "UPDATE dataset SET name = 'other'",
        "ALTER TABLE event DISABLE TRIGGER event_is_never_changed",
    ],
)
def test_what_was_altered_is_found(postgres_url, connect, change):
    with Ledger.open(postgres_url, evidence=HABITS) as ledger:
        publish(ledger)
        publish(ledger, "next", standing(period="2014"))
        ledger.verify(contents=False)
        connect.execute("ALTER TABLE event DISABLE TRIGGER ALL")
        connect.execute("ALTER TABLE entry DISABLE TRIGGER ALL")
        connect.execute(change)
        if not change.startswith("ALTER"):
            connect.execute("ALTER TABLE event ENABLE TRIGGER ALL")
        with pytest.raises(LedgerError):
            ledger.verify(contents=False)


EVIL = "CREATE FUNCTION evil() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$; "


@thinned(3)
@pytest.mark.parametrize(
    ("change", "named"),
    [
        (EVIL.replace("evil", "refuse_change").replace("CREATE", "CREATE OR REPLACE"), "function refuse_change"),
        (EVIL, "function evil"),
        (EVIL + "CREATE TRIGGER quiet BEFORE INSERT ON entry FOR EACH ROW EXECUTE FUNCTION evil()", "trigger quiet"),
        ("DROP TRIGGER event_is_never_changed ON event", "trigger event_is_never_changed"),
        ("ALTER TABLE event DISABLE TRIGGER event_is_never_emptied", "trigger event_is_never_emptied"),
        ("ALTER TABLE event ENABLE REPLICA TRIGGER event_is_never_changed", "trigger event_is_never_changed"),
        (
            "CREATE OR REPLACE TRIGGER event_is_never_changed BEFORE UPDATE OF key OR DELETE ON event "
            "FOR EACH ROW EXECUTE FUNCTION refuse_change()",
            "trigger event_is_never_changed",
        ),
        (
            "CREATE OR REPLACE TRIGGER event_is_never_changed BEFORE UPDATE OR DELETE ON event "
            "FOR EACH ROW WHEN (false) EXECUTE FUNCTION refuse_change()",
            "trigger event_is_never_changed",
        ),
        ("ALTER TABLE entry DISABLE TRIGGER ALL", "foreign keys of table entry"),
        ("ALTER TABLE event DROP CONSTRAINT event_hash_key", r"unique index of table event \(hash\)"),
        ("DROP INDEX entry_key", "unique index of table entry"),
        (
            "DROP INDEX entry_key; CREATE UNIQUE INDEX entry_key ON entry (dataset, key, revision) WHERE state = 'x'",
            "unique index of table entry",
        ),
        ("CREATE RULE quiet AS ON INSERT TO entry DO INSTEAD NOTHING", "rule quiet"),
        ("ALTER TABLE entry ENABLE ROW LEVEL SECURITY", "table entry"),
        ("CREATE TABLE public.more () INHERITS (entry)", "table entry"),
        ("ALTER TABLE entry SET UNLOGGED", "table entry"),
        ("CREATE VIEW more AS SELECT 1", "table more"),
        (
            "ALTER TABLE entry RENAME TO other; CREATE VIEW entry AS SELECT * FROM other",
            "table entry, table other",
        ),
    ],
)
def test_a_changed_schema_is_found(postgres_url, connect, change, named):
    with Ledger.open(postgres_url) as ledger:
        publish(ledger)
        ledger.verify(contents=False)
        connect.execute(change)
        with pytest.raises(LedgerError, match=f"another schema.*{named}"):
            ledger.verify(contents=False)


def test_more_indexes_for_reading_do_no_harm(postgres_url, connect):
    with Ledger.open(postgres_url) as ledger:
        publish(ledger)
        connect.execute("CREATE INDEX mine ON event (created_at)")
        connect.execute("ANALYZE")
        ledger.verify(contents=False)


def test_rows_of_no_data_set_are_found(postgres_url, connect):
    with Ledger.open(postgres_url) as ledger:
        publish(ledger)
        rows = connect.execute("SELECT column_name FROM information_schema.columns WHERE table_name = 'entry'")
        names = [name for (name,) in rows.fetchall()]
        given = {"id": "2", "dataset": "'ghost'"}
        chosen = ", ".join(given.get(name, name) for name in names)
        connect.execute(f"INSERT INTO entry ({', '.join(names)}) SELECT {chosen} FROM entry")
        with pytest.raises(LedgerError, match="no events"):
            ledger.verify(contents=False)


@pytest.mark.usefixtures("no_waiting")
def test_a_locked_data_set_is_a_temporary_error_and_others_go_on(postgres_url):
    with (
        Ledger.open(postgres_url, dataset="flights") as ledger,
        Ledger.open(postgres_url, dataset="flights") as other,
        Ledger.open(postgres_url, dataset="ships") as ships,
    ):
        publish(ships, "first", standing(noised=True))
        with ledger.records.database.transaction("flights"):
            with pytest.raises(TemporaryError, match="locked"):
                publish(other)
            assert other.find("key") is None
            assert publish(ships, "first")[1]
            assert not publish(ships, "next", standing(noised=True, period="2014"))[1]
        assert not publish(other)[1]


def test_who_waits_for_a_data_set_can_be_told_to_stop(postgres_url):
    class Told(BaseException):
        pass

    calls = []

    def look():
        calls.append("looked")
        if len(calls) == 2:
            raise Told

    with Ledger.open(postgres_url) as ledger, Ledger.open(postgres_url) as other:
        with ledger.records.database.transaction("default"), while_waiting(look), pytest.raises(Told):
            reserve(other)
        reserve(other)
        assert len(calls) == 2


def test_who_waits_for_a_data_set_gets_it_when_it_is_free(postgres_url):
    with Ledger.open(postgres_url) as ledger, Ledger.open(postgres_url) as other:
        with ThreadPoolExecutor(1) as pool:
            lock_held, wait = threading.Event(), threading.Event()

            def hold():
                with ledger.records.database.transaction("default"):
                    lock_held.set()
                    wait.wait()

            holding = pool.submit(hold)
            lock_held.wait()
            with while_waiting(wait.set):
                reserve(other)
            holding.result()
        assert wait.is_set()
        assert len(list(other.entries())) == 1


@pytest.mark.usefixtures("no_waiting")
def test_spellings_of_one_data_set_share_its_lock(postgres_url):
    with Ledger.open(postgres_url, dataset="Flights") as ledger, Ledger.open(postgres_url, dataset="flights") as other:
        with ledger.records.database.transaction("Flights"), pytest.raises(TemporaryError, match="locked"):
            publish(other)
        publish(ledger)
        with pytest.raises(TemporaryError, match="'Flights'"):
            publish(other)


def test_what_was_committed_while_waiting_is_seen(cluster, postgres_url):
    import psycopg

    with psycopg.connect(cluster.url("postgres"), autocommit=True) as connection:
        connection.execute("ALTER DATABASE ledger SET default_transaction_isolation = 'serializable'")
        connection.execute("ALTER DATABASE ledger SET synchronous_commit = 'off'")
    with Ledger.open(postgres_url) as ledger, Ledger.open(postgres_url) as other:
        assert ledger.records.database.execute("SHOW synchronous_commit") == [("on",)]
        published = []
        with ledger.records.database.transaction("default"):
            assert ledger.records.database.execute("SHOW transaction_isolation") == [("read committed",)]
            waiting = threading.Thread(target=lambda: published.append(publish(other)))
            waiting.start()
            ledger.records.register()
        publish(ledger, content=b"mine")
        waiting.join()
        assert ledger.find("key") == published[0][0]
        ledger.verify(contents=False)


def test_a_snapshot_sees_one_state_and_writes_nothing(postgres_url):
    with Ledger.open(postgres_url) as ledger, Ledger.open(postgres_url) as other:
        with ledger.records.database.snapshot():
            assert list(ledger.entries()) == []
            publish(other)
            assert list(ledger.entries()) == []
            with pytest.raises(LedgerError, match="read-only"):
                ledger.records.database.execute("DELETE FROM dataset")
        assert len(list(ledger.entries())) == 1


def test_threads_may_share_a_ledger(postgres_url):
    with Ledger.open(postgres_url, evidence=HABITS) as ledger:

        def work(number):
            publish(ledger, "key", content=str(number).encode())
            publish(ledger, f"own {number}", standing(period=f"200{number}"))

        threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(list(ledger.entries())) == 7
        ledger.verify(contents=False)


def test_many_open_a_new_ledger_at_once(postgres_url):
    failed = []

    def work():
        try:
            Ledger.open(postgres_url).close()
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []


def test_an_unknown_schema_is_refused(postgres_url, connect):
    Ledger.open(postgres_url).close()
    connect.execute("UPDATE schema_version SET version = 99")
    with pytest.raises(LedgerError, match="schema 99"):
        Ledger.open(postgres_url)


def test_tables_of_something_else_are_left_alone(postgres_url, connect):
    connect.execute("CREATE SCHEMA pkdp")
    connect.execute("CREATE TABLE mine (x integer)")
    with pytest.raises(LedgerError, match="something else"):
        Ledger.open(postgres_url)
    assert connect.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'pkdp'").fetchone() == (1,)


def test_tables_of_the_same_names_elsewhere_do_not_matter(postgres_url, connect):
    connect.execute("CREATE TABLE public.event (x integer)")
    with Ledger.open(postgres_url) as ledger:
        assert not publish(ledger)[1]


def test_a_user_without_rights_is_told_so(cluster, postgres_url, connect):
    connect.execute("CREATE ROLE reader LOGIN PASSWORD 'reading'")
    Ledger.open(postgres_url).close()
    connect.execute("GRANT USAGE ON SCHEMA pkdp TO reader")
    connect.execute("GRANT SELECT ON ALL TABLES IN SCHEMA pkdp TO reader")
    url = postgres_url.replace("pkdp:" + postgres_url.split(":")[2].split("@")[0], "reader:reading")
    with Ledger.open(url) as ledger:
        assert ledger.find("key") is None
        ledger.verify()
        with pytest.raises(LedgerError, match="Grant") as raised:
            reserve(ledger)
    assert "reading" not in str(raised.value)
    connect.execute("DROP OWNED BY reader")
    connect.execute("DROP ROLE reader")


def test_a_closed_ledger_is_a_ledger_error(postgres_url):
    ledger = Ledger.open(postgres_url)
    ledger.close()
    ledger.close()
    with pytest.raises(LedgerError, match="closed"):
        ledger.find("key")


def test_a_lost_connection_is_a_temporary_error_and_the_next_call_works(postgres_url, connect):
    with Ledger.open(postgres_url) as ledger:
        reservation = reserve(ledger)

        def cut():
            connect.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )

        def lose():
            with ledger.records.database.transaction("default"):
                cut()
                ledger.records.row(reservation.charged.sequence)

        with pytest.raises(TemporaryError, match="once"):
            lose()
        assert not ledger.publish(reservation, b"bytes", "release")[1]
        cut()
        assert publish(ledger)[1]
        ledger.verify(contents=False)


def test_a_connection_lost_when_committing_leaves_a_charge_that_is_taken_over(postgres_url, connect, monkeypatch):
    append = Records.append

    def append_and_cut(journal, **fields):
        sequence = append(journal, **fields)
        connect.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        return sequence

    with Ledger.open(postgres_url) as ledger:
        monkeypatch.setattr(Records, "append", append_and_cut)
        with pytest.raises(TemporaryError):
            reserve(ledger)
        monkeypatch.undo()
        assert not publish(ledger)[1]
        assert [event.kind for event in ledger.records.events()] == ["reserved", "published"]


SECRET = "p@ss/w:rd"


@pytest.mark.parametrize(
    ("url", "kind"),
    [
        ("postgresql://user:p%40ss%2Fw%3Ard@127.0.0.1:1/database", TemporaryError),
        ("postgresql+psycopg://user:p%40ss%2Fw%3Ard@127.0.0.1:1/database", TemporaryError),
        ("postgres://user@127.0.0.1:1/database?password=p%40ss%2Fw%3Ard", TemporaryError),
        ("postgresql://user@127.0.0.1:1/database?sslpassword=p%40ss%2Fw%3Ard", TemporaryError),
        ("postgresql://user:p%40ss%2Fw%3Ard@no-host.invalid/database", TemporaryError),
        ("postgresql://user:p%40ss%2Fw%3Ard@[::1/database", ArgumentError),
        ("postgresql://user:p%40ss%2Fw%3Ard@host:port/database", ArgumentError),
        ("postgresql://user:p%40ss%2Fw%3Ard@127.0.0.1:1/database?no_such_option=1", LedgerError),
    ],
)
def test_no_message_tells_the_password(url, kind):
    with pytest.raises(kind) as raised:
        Ledger.open(url)
    error = raised.value
    assert error.__cause__ is None
    assert error.__context__ is None  # where a logger may find the driver's words, suppressed or not
    for form in (SECRET, "p%40ss%2Fw%3Ard", "p%40ss"):
        assert form not in str(error)


def test_a_wrong_password_and_a_missing_database_are_ledger_errors(cluster):
    for url in (cluster.url("postgres", "not the password"), cluster.url("no_such_database")):
        with pytest.raises(LedgerError, match="Check user, password and database") as raised:
            Ledger.open(url)
        assert "not the password" not in str(raised.value)
        assert "sesame" not in str(raised.value)


def test_the_location_has_no_user_password_or_options(postgres_url):
    with Ledger.open(postgres_url) as ledger:
        assert ledger.location == "postgresql://local/ledger"


def test_tables_that_could_not_be_read_are_remembered(postgres_url):
    with Ledger.open(postgres_url, dataset="people") as ledger:
        ledger.mark_unreadable("events")
        ledger.mark_unreadable("events")
        ledger.verify()
        assert [event.kind for event in ledger.records.events()] == ["unreadable"]
        assert ledger.unreadable() == {"events"}


@pytest.mark.parametrize("option", ["sslmode=foo", "target_session_attrs=foo", "sslmode=disable&sslnegotiation=direct"])
def test_an_option_that_libpq_does_not_understand_is_no_matter_of_time(option):
    with pytest.raises(LedgerError, match="Correct its URL"):
        Ledger.open(f"postgresql://user@127.0.0.1:1/database?{option}")
    with pytest.raises(TemporaryError, match="cannot be reached"):
        Ledger.open("postgresql://user@127.0.0.1:1/database?sslmode=disable")


def test_another_data_set_is_named_when_one_starts(postgres_url):
    with Ledger.open(postgres_url, dataset="flights") as ledger:
        publish(ledger)
    with Ledger.open(postgres_url, dataset="flight") as ledger, pytest.warns(UserWarning, match="'flights'"):
        publish(ledger)


def test_what_was_promised_once_is_not_taken_back(postgres_url):
    from pkdp_pipeline.model.attacker import AttackerModel, Leakage
    from pkdp_pipeline.model.mechanisms import Count, Histogram
    from pkdp_pipeline.model.question import Question
    from pkdp_pipeline.releases.publish import Publication
    from pkdp_pipeline.releases.publish import publish as publish_question

    people = pd.DataFrame({"id": range(60), "cell": "a"})
    knows_total = AttackerModel(p_max_between=0.6, leakage=Leakage.total())
    terms = {"unit": "id", "period": "2021", "protects": "value"}
    cells, number = Question(mechanism=Histogram(k=50), by="cell", **terms), Question(mechanism=Count(), **terms)
    with Ledger.open(postgres_url) as ledger:
        for attacker in (AttackerModel(p_max_between=0.6), knows_total):
            publish_question(lambda: people, Publication(question=cells, attacker=attacker, ledger=ledger))
        with pytest.raises(DifferencingError, match="keeps what any of its certificates promised"):
            publish_question(lambda: people, Publication(question=number, attacker=knows_total, ledger=ledger))
