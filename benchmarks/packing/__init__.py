"""What `make bench NAME=pack` is made of: real photographs, corpora, the packers side by side, and what they cost."""
