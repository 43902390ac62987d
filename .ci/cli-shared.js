// What most commands load: one chunk of the bundle, instead of one for each set of commands that share a module.
import '../src/client/client.ts'
import '../src/client/http/pages.ts'
import '../src/client/http/proxy.ts'
import '../src/client/names.ts'
import '../src/ui/command/base-command.ts'
import '../src/ui/command/command-line.ts'
import '../src/ui/command/failure.ts'
