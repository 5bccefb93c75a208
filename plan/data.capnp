@0xe8c1d52f7a3b9640;
# The data of a run: where samples come from, and how images are augmented.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("leeway::plan_schema");
using Cpp = import "/messages/generator/annotations.capnp";
$Cpp.namespace("leeway::plan");
$Cpp.flat;
$Cpp.stem("data");
$Cpp.include("core/expected.hpp");
$Cpp.support("plan/wire.hpp");
using Range = import "/plan/annotations.capnp";
using import "/plan/annotations.capnp".flag;
using import "/plan/annotations.capnp".help;
using import "/plan/annotations.capnp".notEmpty;
using import "/plan/annotations.capnp".range;
using import "/plan/annotations.capnp".values;
using import "/messages/generator/annotations.capnp".limit;
using import "/messages/generator/annotations.capnp".name;

struct DataSource {
  union {
    fashionMnist @0 :Directory
      $help("Fashion-MNIST (Xiao et al. 2017): images of 1x28x28, 10 classes");
    idx @1 :Idx $help("plain or gzipped IDX files; pixels become (value / 255 - mean) / deviation");
    csv @2 :Csv $help("tables of numbers and texts with one label column");
    synthetic @3 :Synthetic $help("samples drawn from the seed");
    custom @4 :Custom $help("a data set of the scenario program");
    text @5 :TextCorpus $help("text, whose characters are predicted from the preceding ones");
    npy @6 :Npy $help("arrays of NumPy, one of features and one of labels");
    images @7 :Images $help("a folder of PNG and JPEG images, one folder per class");
  }
  struct Directory $name("FashionMnist") {
    directory @0 :Text = "/usr/share/datasets/fashion-mnist"
      $notEmpty("the folder of the four files") $help("folder of the four files");
  }
  struct Idx {
    trainImages @0 :Text $notEmpty("the path of the file") $help("file of the training images");
    trainLabels @1 :Text $notEmpty("the path of the file") $help("file of the training labels");
    testImages @2 :Text $notEmpty("the path of the file") $help("file of the test images");
    testLabels @3 :Text $notEmpty("the path of the file") $help("file of the test labels");
  }
  struct Csv {
    train @0 :Text $notEmpty("the path of the file") $help("training file");
    test @1 :Text $help("test file; empty: a seeded share of the training rows is set aside");
    label @2 :Text = "label" $notEmpty("the name of the label column") $flag("--label")
      $values("its name; with .npy data, the file of the labels")
      $help("column to predict, or its number in files without a header, where label is the last");
    regression @3 :Bool $help("the label is a number; otherwise it is a class, from 0 or a text");
    testShare @4 :Float64 = 0.2 $range(Range.testShare)
      $help("share of the rows that is set aside for tests");
    normalize @5 :Bool = true
      $help("features to mean 0 and deviation 1, by the training rows");
    header @6 :Bool = true $help("the first line names the columns; otherwise they are numbered");
    separator @7 :Text = "," $notEmpty("one character, or tab") $flag("--separator")
      $help("character between fields, or tab");
    missing @8 :Missing $flag("--missing") $help("what replaces a missing number");
    textColumns @9 :List(Text) $limit("kMaxTextColumns") $flag("--text-columns")
      $values("their names, as in \"zip,code\"")
      $help("columns of texts, even if these look like numbers");
  }
  struct Npy {
    features @0 :Text $notEmpty("the path of the file") $help("training features, (N, ...)");
    labels @1 :Text $notEmpty("the path of the file")
      $help("training labels, (N); the flag --label sets it, too");
    testFeatures @2 :Text $help("test features; empty: a seeded share is set aside");
    testLabels @3 :Text $help("test labels");
    regression @4 :Bool $help("the label is a number; otherwise it is a class, from 0");
    testShare @5 :Float64 = 0.2 $range(Range.testShare)
      $help("share of the samples that is set aside for tests");
    normalize @6 :Bool = true
      $help("each feature, or all pixels together, to mean 0 and deviation 1");
  }
  struct Images $name("ImageFolder") {
    train @0 :Text $notEmpty("the path of the folder") $help("training folder");
    test @1 :Text $help("test folder; empty: a seeded share of the images is set aside");
    testShare @2 :Float64 = 0.2 $range(Range.testShare)
      $help("share of the images that is set aside for tests");
  }
  struct Synthetic {
    samples @0 :UInt32 = 10000 $range(Range.atLeastOne) $help("training samples");
    testSamples @1 :UInt32 = 1000 $range(Range.atLeastOne) $help("test samples");
    union {
      line :group $help("y = slope * x + intercept + noise * N(0, 1), x uniform in [-1, 1)") {
        slope @2 :Float64 = 3 $range(Range.number) $help("slope of the line");
        intercept @3 :Float64 = 2 $range(Range.number) $help("y at x = 0");
        noise @4 :Float64 = 0.1 $range(Range.notNegative) $help("standard deviation of the noise");
      }
      clusters :group $help("one Gaussian cluster for each class, its center on a sphere") {
        classes @5 :UInt32 = 10 $range(least = 2, most = 1048576) $help("number of classes");
        features @6 :UInt32 = 32 $range(least = 1, most = 1048576) $help("features per sample");
        spread @7 :Float64 = 3 $range(Range.notNegative) $help("radius of the sphere");
      }
    }
  }
  struct Custom $name("CustomData") {
    name @0 :Text $notEmpty("the name that the data set is registered with")
      $help("name that the data set is registered with");
  }
  struct TextCorpus {           # each character by its number in the vocabulary of the text
    file @0 :Text $help("UTF-8 file; empty: the King James Bible of Debian's bible-kjv");
    context @1 :UInt32 = 64 $range(least = 1, most = 1048576) $help("characters per sample");
    testShare @2 :Float64 = 0.1 $range(Range.testShare)
      $help("share at the end of the text that is set aside for tests");
  }
}

struct SplitData {
  # Samples that each worker, or pipeline, has for itself. While it takes part, no other worker
  # trains them, except those of partial pushes.
  union {
    shared @0 :Void $name("SharedData") $help("every worker trains any samples");
    iid @1 :Void $name("IidSplit") $help("equal numbers of samples, drawn at random");
    dirichlet :group $name("DirichletSplit")
        $help("shares of the samples of each class from a Dirichlet distribution") {
      alpha @2 :Float64 = 0.5 $range(Range.aboveZero)
        $help("the smaller, the more the workers differ");
    }
    byLabel :group $name("LabelSplit")
        $help("the samples in order of their labels, divided into pieces, some for each worker") {
      labels @3 :UInt32 = 2 $range(least = 1, most = 1048576) $help("pieces of a worker");
    }
  }
}

struct Augment {
  flip @0 :Bool $help("mirrors an image left to right, with probability 1/2");
  shift @1 :UInt32 $range(least = 0, most = 999)
    $help("maximum shift of an image in pixels, each way");
}

enum Missing {
  refuse @0 $help("nothing: the file is refused");
  mean @1 $help("the mean of the training rows; texts become zeros");
}
