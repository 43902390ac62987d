/** Options (`--name`) and arguments (`name`) by the kind of their values; a command before the name limits the entry to it. */
const namedBy = {
  selector: ['--hosts', '--selector', '--exclude', 'hosts:doctor host', 'selector'],
  host: ['--host', '--replace', 'host'],
  cluster: ['--cluster', 'cluster'],
  tag: ['--tag'],
  'tag key': ['--untag'],
  script: ['--script', 'script'],
  'script or file': [
    'exec --script',
    '--verify',
    '--rollback',
    'schedules:add --script',
    'schedules:edit --script',
  ],
  schedule: ['--schedule', 'schedule'],
  user: ['--created-by', '--user', '--actor', 'user'],
  session: ['--watch'],
  context: ['--context', 'context:remove name', 'context:use name'],
  strategy: ['--strategy'],
  format: ['--output'],
  limit: [
    'exec --limit',
    'scripts:run --limit',
    'schedules:add --limit',
    'schedules:edit --limit',
    'agent:run --limit',
  ],
  file: [
    '--file',
    '--executable',
    '--backup',
    '--join-file',
    '--token-file',
    '--ca-file',
    '--enroll-token-file',
    '--passphrase-file',
    '--private-key',
    '--secret-file',
    '--store-password-file',
    '--tls-cert',
    '--tls-key',
    '--stdin',
    'audit:export --output',
    'cp path',
    'schedules:add --copy',
    'schedules:edit --copy',
    'file',
  ],
  directory: ['--data-dir', '--keys', '--outdir', '--prefix'],
  upload: ['upload'],
  task: ['task'],
  token: ['token'],
  enrollment: ['enrollment'],
  webhook: ['webhook'],
  recording: ['session'],
  'recording or file': ['recording'],
  method: ['method'],
} as const

/** Free text, without completions. */
const free = `
--limit --limit-rate --action --advertise --after --agent-id --allow-run-as --at --batch-size --category --code --concurrency --count --cron --data --deadline --description --email
--enroll-token --escape --every --expires --from --head --heartbeat-interval --host-key --hostname --idempotency-key --idle-limit --ip --jitter --jump
--max-executions --max-failures --max-file-size --max-output-bytes --max-size --max-upload-bytes --max-uses --metrics-interval --missed-within --mode --name --object --owner --param --pause --points --port --public-url --queue
--recording-retention --run-as --search --secret-param --sha256 --server-name --shell --since --speed --ssh --ssh-port --ssh-user --store --tail --task-retention
--terminal-idle-limit --timeout --tls-fingerprint --to --trusted-proxy --tz --until --url --username --verify-interval --verify-retries --warn-after --webhook-allow --workdir
--ws-idle-timeout hostname id join name path url username version
`
const freeOfOne = ['server:start --host', 'scripts:add --tag', 'scripts:edit --tag', 'scripts:list --tag']

export type Kind = keyof typeof namedBy | 'free'

/** Every option and argument without a closed set of values. A test compares it with the manifest. */
export const kinds: Readonly<Record<string, Kind>> = Object.fromEntries([
  ...Object.entries(namedBy).flatMap(([kind, names]) => names.map((name) => [name, kind as Kind] as const)),
  ...[...free.trim().split(/\s+/), ...freeOfOne].map((name) => [name, 'free'] as const),
])

/** The kind of an option (`--name`) or argument (`name`) of a command; undefined if it has no entry. */
export function kindOf(command: Pick<Command, 'id'>, name: string): Kind | undefined {
  return kinds[`${command.id} ${name}`] ?? kinds[name]
}

/** A flag in oclif.manifest.json. */
export interface Flag {
  readonly name: string
  readonly type: 'option' | 'boolean'
  readonly char?: string
  readonly description?: string
  readonly helpGroup?: string
  readonly hidden?: boolean
  readonly multiple?: boolean
  /** Separates values within a word. */
  readonly delimiter?: string
  readonly options?: readonly string[]
  readonly aliases?: readonly string[]
  readonly charAliases?: readonly string[]
  readonly exclusive?: readonly string[]
}

interface Arg {
  readonly name: string
  readonly hidden?: boolean
  /** Repeatable; only the last argument of a command is. */
  readonly multiple?: boolean
  readonly options?: readonly string[]
}

export interface Command {
  readonly id: string
  readonly summary?: string
  readonly hidden?: boolean
  /** False if options end at the first argument. */
  readonly strict?: boolean
  readonly flags: Readonly<Record<string, Flag>>
  readonly args: Readonly<Record<string, Arg>>
}

/** The part of oclif.manifest.json that completion reads. */
export interface Manifest {
  readonly commands: Readonly<Record<string, Command>>
}
