"""What cells are built from: recurrent layers, dropout, attention scores, initial weights."""
