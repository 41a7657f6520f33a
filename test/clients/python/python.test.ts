import { describePython } from "./python-scenarios.ts";

for (const column of ["async", "sync"]) {
  describePython("Python SDK: resources and run streams", "first_wire", column);
  describePython("RemoteGraph of Python", "remote_graph", column);
}
