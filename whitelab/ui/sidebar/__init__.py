"""The workspace bar: model, data and setting, kept in the address."""
