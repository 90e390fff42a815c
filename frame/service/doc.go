// Package service is what every service's process needs around its own work: commands and exit codes ([Program]),
// signals ([SignalContext]), a logger ([NewLogger]) that says each cause once a minute ([LimitLog]), an admin listener
// with readiness and metrics ([Admin]) and supervised tasks ([Group]).
//
// It knows no business word and reads no environment of its own: cmd/ hands it over.
package service

import "log/slog"

// A Host is what a service gets from the process it runs in.
type Host struct {
	Log *slog.Logger

	// Ready is called once, when the listeners are open. It may be nil.
	Ready func(Listening)
}

// Listening says where a service can be reached: host and port as bound, also when port 0 was asked for. API is empty
// for a service without one.
type Listening struct{ API, Admin string }

// Announce logs where the service listens and tells the one who started it. Services call it, once.
func (h Host) Announce(at Listening) {
	h.Log.Info("listening", "api", at.API, "admin", at.Admin)
	if h.Ready != nil {
		h.Ready(at)
	}
}
