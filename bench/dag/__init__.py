"""What a step costs: graphs of steps that do nothing, run by treadle, by a bare floor and by its peers."""
