"""What rows cost: treadle beside other tools that transform, filter and count them."""
