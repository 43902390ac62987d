import { execFileSync } from 'node:child_process'

/** One call of `nodeset`: `-e` expands, `-f` folds. */
export interface NodesetCall {
  readonly command: '-e' | '-f'
  readonly nodes: string
}

/** Groups as ClusterShell has them: a source, `cluster` being the default, with the node set of each of its groups. */
export interface NodesetGroups {
  readonly every: string
  readonly sources: Readonly<Record<string, Readonly<Record<string, string>>>>
}

/**
 * The program `nodeset` itself, called again and again in one process, which a process a call would take minutes for: what
 * /usr/bin/nodeset does is call this `main`. Only where its groups come from is set here, which is /etc otherwise.
 */
const program = `
import contextlib, io, json, sys
from ClusterShell import NodeSet
from ClusterShell.CLI import Nodeset
from ClusterShell.NodeUtils import GroupResolver, GroupSource

given = json.load(sys.stdin)
groups = given['groups']
default, *others = [GroupSource(name, known, groups['every']) for name, known in groups['sources'].items()]
resolver = GroupResolver(default)
for source in others:
    resolver.add_source(source)
NodeSet.set_std_group_resolver(resolver)
Nodeset.set_std_group_resolver_config = lambda *args: None

for call in given['calls']:
    sys.argv = ['nodeset', '-S', r'\\n', call['command'], '--', call['nodes']]
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            Nodeset.main()
        except SystemExit as end:
            code = end.code
    print(json.dumps({'code': code, 'out': out.getvalue(), 'err': err.getvalue()}))
`

interface Answer {
  readonly code: number
  readonly out: string
  readonly err: string
}

const noGroups: NodesetGroups = { every: '', sources: { cluster: {} } }

/** What `nodeset` prints for each call, its lines sorted where it expands; an Error where it refuses. */
export function askNodeset(calls: readonly NodesetCall[], groups = noGroups): (string | Error)[] {
  const output = execFileSync('/usr/bin/python3', ['-c', program], {
    input: JSON.stringify({ calls, groups }),
    encoding: 'utf8',
    maxBuffer: 256 * 1024 * 1024,
  })
  const answers = output.trimEnd().split('\n')
  return answers.map((line, at) => {
    const { code, out, err } = JSON.parse(line) as Answer
    if (code !== 0) return new Error(err)
    return calls[at]?.command === '-e' ? out.trimEnd().split('\n').sort().join(' ') : out.trimEnd()
  })
}

/** Whether Debian's clustershell is here to compare with (2026-11-21). */
export function hasNodeset(): boolean {
  try {
    return askNodeset([{ command: '-f', nodes: 'web1,web2' }])[0] === 'web[1-2]'
  } catch {
    return false
  }
}
