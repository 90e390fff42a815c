package verify

// Without switches a rule off, so that a test can show that it is needed.
func (c Config) Without(rule Rule) Config {
	c.off = rule
	return c
}

// AtMost limits the records of a topic.
func (c Config) AtMost(records int64) Config {
	c.most = records
	return c
}
