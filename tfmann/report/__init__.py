"""What a person looks at: plots, TensorBoard, tables."""
