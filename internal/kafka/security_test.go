package kafka_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"

	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/test/kafkatest"
	"example.com/twinbox/test/testkit"
)

func identity(t *testing.T) (certificate, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	own := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, own, own, &private.PublicKey, private)
	require.NoError(t, err)
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded}))
}

func TestABrokerThatAsksForACertificate(t *testing.T) {
	t.Parallel()
	server := testkit.NewTLSServer(t)
	authority, err := os.ReadFile(server.File(t))
	require.NoError(t, err)
	certificate, key := identity(t)
	demands := server.Config()
	demands.ClientAuth, demands.ClientCAs = tls.RequireAndVerifyClientCert, x509.NewCertPool()
	require.True(t, demands.ClientCAs.AppendCertsFromPEM([]byte(certificate)))
	_, brokers := kafkatest.Fake(t, kfake.TLS(demands), kfake.SeedTopics(1, "t"))
	with := func(authority, certificate, key string) kafka.Config {
		secured, err := kafka.TLS(authority, certificate, key)
		require.NoError(t, err)
		return kafka.Config{Brokers: brokers, TLS: secured, RequestTimeout: time.Second}
	}
	right := with(string(authority), certificate, key)
	require.NoError(t, newPublisher(t, right).Publish("t", newEvent("a", 1)))
	cfg := singles(brokers, "g")
	cfg.TLS = right.TLS
	require.Equal(t, []string{"a-1"}, join(t, cfg, "t").read(t, 1))

	require.ErrorContains(t, kafka.Ping(t.Context(), with("", certificate, key)), "unknown authority")
	require.Error(t, kafka.Ping(t.Context(), with(string(authority), "", "")))
	otherCertificate, otherKey := identity(t)
	require.Error(t, kafka.Ping(t.Context(), with(string(authority), otherCertificate, otherKey)))
	_, err = kafka.TLS("no certificate", "", "")
	require.Error(t, err)
	_, err = kafka.TLS("", certificate, otherKey)
	require.ErrorContains(t, err, "private key does not match")
}

func TestABrokerThatAsksForALogin(t *testing.T) {
	t.Parallel()
	for mechanism, of := range map[string]string{
		kafka.Plain: "PLAIN", kafka.ScramSHA256: "SCRAM-SHA-256", kafka.ScramSHA512: "SCRAM-SHA-512",
	} {
		t.Run(mechanism, func(t *testing.T) {
			t.Parallel()
			_, brokers := kafkatest.Fake(t, kfake.EnableSASL(), kfake.Superuser(of, app, secret), kfake.SeedTopics(1, "t"))
			cfg := singles(brokers, "g")
			cfg.User, cfg.Password, cfg.Mechanism = app, secret, mechanism
			require.NoError(t, newPublisher(t, cfg.Config).Publish("t", newEvent("a", 1)))
			require.Equal(t, []string{"a-1"}, join(t, cfg, "t").read(t, 1))
			cfg.Password = "wrong"
			require.Error(t, kafka.Ping(t.Context(), cfg.Config))
		})
	}
}
