// The controllers and webhooks of the training operator with a main of its own: that of the project serves its
// webhooks at all addresses, with a certificate that it makes for a Service.
package main

import (
	"flag"
	"os"

	kubeflow "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	"github.com/kubeflow/training-operator/pkg/config"
	controllers "github.com/kubeflow/training-operator/pkg/controller.v1"
	"github.com/kubeflow/training-operator/pkg/controller.v1/common"
	"github.com/kubeflow/training-operator/pkg/webhooks"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/yaml"
)

var kinds = []string{
	kubeflow.JAXJobKind, kubeflow.PaddleJobKind, kubeflow.PyTorchJobKind, kubeflow.TFJobKind, kubeflow.XGBoostJobKind,
}

type configuration struct {
	Webhook struct {
		Host string `json:"host"`
		Port int    `json:"port"`
	} `json:"webhook"`
}

func main() {
	file := flag.String("config", "", "the file with the address of the webhooks")
	flag.Parse()
	ctrl.SetLogger(zap.New())
	if err := run(*file); err != nil {
		ctrl.Log.Error(err, "the training operator ends")
		os.Exit(1)
	}
}

func run(file string) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var given configuration
	if err := yaml.UnmarshalStrict(content, &given); err != nil {
		return err
	}
	// What the project's main has by default.
	config.Config.PyTorchInitContainerImage = config.PyTorchInitContainerImageDefault
	config.Config.PyTorchInitContainerTemplateFile = config.PyTorchInitContainerTemplateFileDefault
	config.Config.PyTorchInitContainerMaxTries = config.PyTorchInitContainerMaxTriesDefault
	config.Config.MPIKubectlDeliveryImage = config.MPIKubectlDeliveryImageDefault

	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, kubeflow.AddToScheme} {
		if err := add(scheme); err != nil {
			return err
		}
	}
	manager, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{
		Scheme:                 scheme,
		Metrics:                server.Options{BindAddress: "0"},
		HealthProbeBindAddress: "0",
		WebhookServer: webhook.NewServer(webhook.Options{
			Host: given.Webhook.Host, Port: given.Webhook.Port,
		}),
	})
	if err != nil {
		return err
	}
	// The definition of MPIJobs may be that of the MPI operator, which has no such version.
	mpi := kubeflow.SchemeGroupVersion.WithKind(kubeflow.MPIJobKind)
	if _, err := manager.GetRESTMapper().RESTMapping(mpi.GroupKind(), mpi.Version); err == nil {
		kinds = append(kinds, kubeflow.MPIJobKind)
	} else if !meta.IsNoMatchError(err) {
		return err
	}
	for _, kind := range kinds {
		reconcile := controllers.SupportedSchemeReconciler[kind]
		if err := reconcile(manager, common.GenNonGangSchedulerSetupFunc(), 1); err != nil {
			return err
		}
		if err := webhooks.SupportedSchemeWebhook[kind](manager); err != nil {
			return err
		}
	}
	return manager.Start(ctrl.SetupSignalHandler())
}
