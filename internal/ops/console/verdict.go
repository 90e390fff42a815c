package console

import "example.com/twinbox/internal/verify"

// addReport adds the last verification to the lanes, and its findings above all causes.
func (f *frame) addReport(report verify.Report) {
	var found []cause
	for i := range f.Lanes {
		l := &f.Lanes[i]
		verdict := report[l.Service]
		if verdict == nil {
			continue
		}
		ago := age(new(f.At.Sub(verdict.At).Seconds())) + " ago"
		l.Verdict = "verified " + ago + ": " + verdict.Summary()
		if !verdict.Clean() {
			found = append(found, cause{
				Service: l.Service, State: stateStopped, Sentence: "The last verification found " + verdict.Summary() + ".",
				Detail: ago, Command: "twinbox verify",
			})
		}
	}
	if len(found) > 0 && f.Causes[0].State == stateWell {
		f.Causes = nil
	}
	f.Causes = append(found, f.Causes...)
}
