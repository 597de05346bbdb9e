"""Building blocks of cells: recurrent layers, dropout, attention scores, initial weights."""
