package realkafka

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// clusterID is the same for all: these clusters never meet, and a data folder must keep its own.
const clusterID = "dHdpbmJveC1sb2NhbC1vbg"

// writeSettings writes server.properties: one node, everything on loopback, nothing replicated, no topic on demand,
// and no waiting for further members before a group's first assignment.
func (s *Server) writeSettings(controller string) error {
	settings := [][2]string{
		{"process.roles", "broker,controller"},
		{"node.id", "1"},
		{"controller.quorum.voters", "1@" + controller},
		{"listeners", "PLAINTEXT://" + s.addr + ",CONTROLLER://" + controller},
		{"advertised.listeners", "PLAINTEXT://" + s.addr},
		{"controller.listener.names", "CONTROLLER"},
		{"listener.security.protocol.map", "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT"},
		{"log.dirs", filepath.ToSlash(filepath.Join(s.dir, "data"))},
		{"auto.create.topics.enable", "false"},
		{"offsets.topic.replication.factor", "1"},
		{"offsets.topic.num.partitions", "4"},
		{"transaction.state.log.replication.factor", "1"},
		{"transaction.state.log.min.isr", "1"},
		{"transaction.state.log.num.partitions", "1"},
		{"share.coordinator.state.topic.replication.factor", "1"},
		{"share.coordinator.state.topic.min.isr", "1"},
		{"group.initial.rebalance.delay.ms", "0"},
		{"group.min.session.timeout.ms", "1000"},
	}
	var text strings.Builder
	for _, setting := range settings {
		fmt.Fprintf(&text, "%s=%s\n", setting[0], setting[1])
	}
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return fmt.Errorf("create data folder: %w", err)
	}
	if err := os.WriteFile(s.settingsFile(), []byte(text.String()), 0o644); err != nil {
		return fmt.Errorf("write settings: %w", err)
	}
	return nil
}
