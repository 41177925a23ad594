"""What several stages share. A part imports no stage, as no stage imports another."""
