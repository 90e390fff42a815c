package realkafka

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// clusterID is the same for all: these clusters never meet, and a data folder must keep its own.
const clusterID = "dHdpbmJveC1sb2NhbC1vbg"

// writeSettings writes server.properties: all addresses are on loopback, nothing is replicated, no topic is made on
// demand, and a group's first assignment waits for no further members.
func (s *Server) writeSettings() error {
	settings := map[string]string{
		"process.roles":                                    "broker,controller",
		"node.id":                                          strconv.Itoa(s.cfg.Node),
		"controller.quorum.voters":                         "1@" + s.controller,
		"listeners":                                        "PLAINTEXT://" + s.addr + ",CONTROLLER://" + s.controller,
		"advertised.listeners":                             "PLAINTEXT://" + s.addr,
		"controller.listener.names":                        "CONTROLLER",
		"listener.security.protocol.map":                   "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
		"log.dirs":                                         filepath.ToSlash(filepath.Join(s.dir, "data")),
		"auto.create.topics.enable":                        "false",
		"offsets.topic.num.partitions":                     "4",
		"offsets.topic.replication.factor":                 "1",
		"transaction.state.log.replication.factor":         "1",
		"transaction.state.log.min.isr":                    "1",
		"transaction.state.log.num.partitions":             "1",
		"share.coordinator.state.topic.replication.factor": "1",
		"share.coordinator.state.topic.min.isr":            "1",
		"group.initial.rebalance.delay.ms":                 "0",
		"group.min.session.timeout.ms":                     "1000",
	}
	if s.cfg.Join != "" {
		settings["process.roles"], settings["listeners"] = "broker", "PLAINTEXT://"+s.addr
	}
	maps.Copy(settings, s.cfg.Settings)
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		fmt.Fprintf(&text, "%s=%s\n", name, settings[name])
	}
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return fmt.Errorf("create data folder: %w", err)
	}
	if err := os.WriteFile(s.settingsFile(), []byte(text.String()), 0o644); err != nil {
		return fmt.Errorf("write settings: %w", err)
	}
	return nil
}
