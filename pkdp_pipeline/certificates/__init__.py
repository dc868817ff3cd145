"""Certificates of one release and of several together: their numbers, their sentences and their JSON."""

from __future__ import annotations

from pkdp_pipeline.certificates.certificate import Certificate
from pkdp_pipeline.certificates.composed import ComposedCertificate
from pkdp_pipeline.certificates.release_certificate import ReleaseCertificate

__all__ = ["Certificate", "ComposedCertificate", "ReleaseCertificate"]
