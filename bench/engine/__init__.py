"""What generating costs, side by side with other engines, on the same weights and prompts."""
