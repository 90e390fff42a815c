package verify

// Without switches a rule off, so that a test can tell whether it would notice.
func (c Config) Without(rule Rule) Config {
	c.off = rule
	return c
}
