// The controller and the webhooks of AppWrapper with a main of their own: that of the project serves webhooks at port
// 9443 of all addresses, which no option changes, and makes their certificate for a service of the cluster.
package main

import (
	"fmt"
	"os"

	"github.com/project-codeflare/appwrapper/api/v1beta2"
	"github.com/project-codeflare/appwrapper/pkg/config"
	"github.com/project-codeflare/appwrapper/pkg/controller"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/yaml"
)

// served says where the webhooks are; their certificate is in the folder for temporary files.
type served struct {
	Host string `json:"host"`
	Port int    `json:"port"`
}

func main() {
	ctrl.SetLogger(zap.New(zap.UseDevMode(true)))
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(file string) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var at served
	if err := yaml.Unmarshal(content, &at); err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return err
	}
	if err := v1beta2.AddToScheme(scheme); err != nil {
		return err
	}
	access, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	manager, err := ctrl.NewManager(access, ctrl.Options{
		Scheme:                 scheme,
		Metrics:                metricsserver.Options{BindAddress: "0"},
		HealthProbeBindAddress: "0",
		WebhookServer:          webhook.NewServer(webhook.Options{Host: at.Host, Port: at.Port}),
	})
	if err != nil {
		return err
	}
	// What the project's main has by default, with the webhooks on.
	defaults := config.NewAppWrapperConfig()
	if err := controller.SetupWebhooks(manager, defaults); err != nil {
		return err
	}
	if err := controller.SetupControllers(manager, defaults); err != nil {
		return err
	}
	return manager.Start(ctrl.SetupSignalHandler())
}
