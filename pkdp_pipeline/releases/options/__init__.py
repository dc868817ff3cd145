"""What files may say about attackers, evidence and budgets, read strictly."""
