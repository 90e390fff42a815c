package verify

// AtMost limits the records of a topic.
func (c Config) AtMost(records int64) Config {
	c.most = records
	return c
}
