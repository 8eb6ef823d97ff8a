"""The ledger: every run that any table or figure stands on is one row, done once and never mixed with another."""
