import type { Command } from './manifest.ts'

/** What a value names: where its candidates come from. `free` is text that nobody but the person knows. */
export type Kind =
  | 'host'
  | 'selector'
  | 'cluster'
  | 'script'
  | 'script or file'
  /** Of the script that is to run, a stored one or a file. */
  | 'param'
  | 'secret param'
  | 'task'
  | 'user'
  | 'token'
  | 'enrollment'
  | 'recording'
  | 'recording or file'
  | 'session'
  | 'context'
  | 'tag'
  | 'tag key'
  | 'strategy'
  | 'limit'
  | 'format'
  | 'method'
  | 'file'
  | 'directory'
  | 'free'

/**
 * Every option (`--name`) and argument (`name`) of the commands whose values are no closed set, by name; where a name
 * means something else in one command, that one stands before it. A test holds this beside the manifest.
 */
export const kinds: Readonly<Record<string, Kind>> = {
  '--hosts': 'selector',
  '--selector': 'selector',
  '--exclude': 'selector',
  '--host': 'host',
  'server:start --host': 'free',
  '--replace': 'host',
  '--cluster': 'cluster',
  '--tag': 'tag',
  'scripts:add --tag': 'free',
  'scripts:edit --tag': 'free',
  'scripts:list --tag': 'free',
  '--untag': 'tag key',
  '--script': 'script',
  'exec --script': 'script or file',
  'exec --param': 'param',
  'exec --secret-param': 'secret param',
  '--created-by': 'user',
  '--user': 'user',
  '--actor': 'user',
  '--watch': 'session',
  '--context': 'context',
  '--strategy': 'strategy',
  '--output': 'format',
  '--limit': 'free',
  'exec --limit': 'limit',
  'scripts:run --limit': 'limit',
  'scripts:run --param': 'param',
  'scripts:run --secret-param': 'secret param',
  'agent:run --limit': 'limit',

  '--file': 'file',
  '--token-file': 'file',
  '--ca-file': 'file',
  '--enroll-token-file': 'file',
  '--private-key': 'file',
  '--tls-cert': 'file',
  '--tls-key': 'file',
  '--data-dir': 'directory',
  '--keys': 'directory',
  '--outdir': 'directory',

  '--action': 'free',
  '--after': 'free',
  '--agent-id': 'free',
  '--allow-run-as': 'free',
  '--batch-size': 'free',
  '--category': 'free',
  '--concurrency': 'free',
  '--data': 'free',
  '--deadline': 'free',
  '--description': 'free',
  '--email': 'free',
  '--enroll-token': 'free',
  '--escape': 'free',
  '--expires': 'free',
  '--from': 'free',
  '--head': 'free',
  '--heartbeat-interval': 'free',
  '--hostname': 'free',
  '--idempotency-key': 'free',
  '--idle-limit': 'free',
  '--ip': 'free',
  '--max-executions': 'free',
  '--max-failures': 'free',
  '--max-uses': 'free',
  '--metrics-interval': 'free',
  '--name': 'free',
  '--object': 'free',
  '--param': 'free',
  '--pause': 'free',
  '--points': 'free',
  '--port': 'free',
  '--queue': 'free',
  '--recording-retention': 'free',
  '--run-as': 'free',
  '--search': 'free',
  '--secret-param': 'free',
  '--shell': 'free',
  '--since': 'free',
  '--speed': 'free',
  '--ssh-port': 'free',
  '--ssh-user': 'free',
  '--tail': 'free',
  '--task-retention': 'free',
  '--terminal-idle-limit': 'free',
  '--timeout': 'free',
  '--tls-fingerprint': 'free',
  '--to': 'free',
  '--until': 'free',
  '--url': 'free',
  '--username': 'free',
  '--warn-after': 'free',
  '--workdir': 'free',
  '--ws-idle-timeout': 'free',

  host: 'host',
  'hosts:doctor host': 'selector',
  selector: 'selector',
  cluster: 'cluster',
  script: 'script',
  task: 'task',
  user: 'user',
  token: 'token',
  enrollment: 'enrollment',
  session: 'recording',
  recording: 'recording or file',
  'context:remove name': 'context',
  'context:use name': 'context',
  file: 'file',
  method: 'method',
  hostname: 'free',
  name: 'free',
  path: 'free',
  url: 'free',
  username: 'free',
  version: 'free',
}

/** The kind of an option (`--name`) or argument (`name`) of a command; undefined for one that the table lacks. */
export function kindOf(command: Pick<Command, 'id'>, name: string): Kind | undefined {
  return kinds[`${command.id} ${name}`] ?? kinds[name]
}
