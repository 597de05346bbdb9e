"""What a person looks at: figures of attention and of memories, TensorBoard."""
