"""What is declared, as frozen values: the attacker, what is published, evidence, periods, budgets and predicates."""
