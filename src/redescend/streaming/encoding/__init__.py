"""Records as rows of numbers: schema, features, target."""
