"""What the conformance suite is made of: sides, masks, omissions, and the cases' vocabulary."""
