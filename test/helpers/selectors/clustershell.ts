import { execFileSync } from 'node:child_process'

/** One call of `nodeset`: `-e` expands, `-f` folds. */
export interface NodesetCall {
  readonly command: '-e' | '-f'
  readonly nodes: string
}

/** Groups of ClusterShell: sources, with `cluster` as the default, and the node set of each of their groups. */
export interface NodesetGroups {
  readonly every: string
  readonly sources: Readonly<Record<string, Readonly<Record<string, string>>>>
}

/**
 * The program `nodeset`, called repeatedly in one process, because one process per call would take minutes: /usr/bin/nodeset
 * only calls this `main`. Only the source of its groups is set here, in place of /etc.
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

/** Output of `nodeset` for each call, with sorted lines if it expands; an Error if it refuses. */
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

/** Whether Debian's clustershell is installed for comparison (2026-11-21). */
export function hasNodeset(): boolean {
  try {
    return askNodeset([{ command: '-f', nodes: 'web1,web2' }])[0] === 'web[1-2]'
  } catch {
    return false
  }
}
