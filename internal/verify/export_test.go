package verify

// Without switches a rule off, so that a test can show that it is needed.
func (c Config) Without(rule Rule) Config {
	c.off = rule
	return c
}
