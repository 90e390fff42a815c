package verify

import "slices"

// suspect is what may become a finding.
type suspect struct {
	Kind    Kind
	Rule    Rule
	Subject string
	ID, Key uint64 // hashes; 0: of none
	Version int64
	Text    string // of a registered check: the finding
}

// result collects what a reading brings to light.
type result struct {
	off          Rule // is not applied: what shows that a test would miss it
	suspects     []suspect
	unverifiable []Unverifiable
	found        map[suspect]Finding // of a registered check
}

func (r *result) suspect(rule Rule, s suspect) {
	if rule != r.off {
		s.Rule = rule
		r.suspects = append(r.suspects, s)
	}
}

// cannot counts what cannot be verified.
func (r *result) cannot(subject string, why Reason, n int64) {
	if n == 0 {
		return
	}
	i := slices.IndexFunc(r.unverifiable, func(u Unverifiable) bool { return u.Subject == subject && u.Reason == why })
	if i < 0 {
		i = len(r.unverifiable)
		r.unverifiable = append(r.unverifiable, Unverifiable{Subject: subject, Reason: why})
	}
	r.unverifiable[i].Events += n
}
