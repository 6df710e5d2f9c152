"""The frozen values the stages hand to one another; every stage meets the others only here."""
