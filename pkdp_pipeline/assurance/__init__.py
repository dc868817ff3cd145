"""What holds certificates and releases to the truth: attackers, verification and the audit."""
