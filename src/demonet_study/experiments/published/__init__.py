"""Results that other papers published of the baselines, measured again with the code here, each under its protocol."""
