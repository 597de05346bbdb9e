"""Operations whose gradients are written out by hand, for speed."""
