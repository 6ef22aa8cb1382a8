// The controller of the MPI operator with a main of its own: that of the project serves its health at port 8080 of
// all addresses, which no option changes, so that two sandboxes could not run on one machine.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/kubeflow/mpi-operator/cmd/mpi-operator/app/options"
	clientset "github.com/kubeflow/mpi-operator/pkg/client/clientset/versioned"
	mpischeme "github.com/kubeflow/mpi-operator/pkg/client/clientset/versioned/scheme"
	informers "github.com/kubeflow/mpi-operator/pkg/client/informers/externalversions"
	"github.com/kubeflow/mpi-operator/pkg/controller"
	kubeinformers "k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		klog.Fatal(err)
	}
}

func run(ctx context.Context) error {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return err
	}
	// What the project's main has by default.
	limits := &options.ServerOption{Threadiness: 2, ControllerRateLimit: 10, ControllerBurst: 100}
	config.QPS, config.Burst = 5, 10

	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	mpi, err := clientset.NewForConfig(config)
	if err != nil {
		return err
	}
	// Events name MPIJobs, so the scheme has to know them.
	if err := mpischeme.AddToScheme(scheme.Scheme); err != nil {
		return err
	}
	kube, jobs := kubeinformers.NewSharedInformerFactory(client, 0), informers.NewSharedInformerFactory(mpi, 0)
	made, err := controller.NewMPIJobController(
		ctx, client, mpi, nil, nil,
		kube.Core().V1().ConfigMaps(), kube.Core().V1().Secrets(), kube.Core().V1().Services(),
		kube.Batch().V1().Jobs(), kube.Core().V1().Pods(), kube.Scheduling().V1().PriorityClasses(),
		jobs.Kubeflow().V2beta1().MPIJobs(), limits,
	)
	if err != nil {
		return err
	}
	kube.Start(ctx.Done())
	jobs.Start(ctx.Done())
	return made.Run(limits.Threadiness, ctx.Done())
}
