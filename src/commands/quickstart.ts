import { randomBytes } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { boolean, string } from '@oclif/core/flags'
import { LocalCommand } from '../cli/command/base-command.ts'
import { ownCommand } from '../cli/command/own-command.ts'
import { aborted, endSoon, stopSignal } from '../cli/command/until-stopped.ts'
import { Contexts } from '../cli/contexts/contexts.ts'
import { integer } from '../cli/flags/checks.ts'
import { stateDirectory } from '../cli/flags/service.ts'
import { makeNamedDirectory } from '../cli/input/named-path.ts'
import { startTask } from '../cli/task/run.ts'
import { withSpinner } from '../cli/text/screen.ts'
import { type Client, openClient } from '../client/client.ts'
import { RsmError } from '../core/errors.ts'
import type { Host } from '../core/protocol/http/hosts.ts'

const firstCommand = 'echo "hello from $(hostname)"; uname -sr; uptime'
const usualPort = 18080
/** Timeout for the agent's first heartbeat, in milliseconds. */
const patience = 30_000
const pollInterval = 50

type Undo = (() => Promise<void> | void)[]

export default class Quickstart extends LocalCommand {
  static override summary = 'Try rsm: start a server and an agent, and run a first command'
  static override examples = ['$ rsm quickstart', '$ rsm quickstart --once']
  static override flags = {
    once: boolean({ description: 'stop after the first command and remove everything' }),
    port: integer({
      min: 0,
      max: 65535,
      description: `port of the server; ${usualPort} if free, any with --once`,
    }),
    'data-dir': string({ helpValue: 'DIR', exclusive: ['once'], description: 'directory for all data' }),
  }

  async run() {
    const { flags } = await this.parse(Quickstart)
    const stop = stopSignal()
    const undo: Undo = []
    try {
      const directory = flags.once
        ? mkdtempSync(join(tmpdir(), 'rsm-quickstart-'))
        : (flags['data-dir'] ?? stateDirectory('quickstart'))
      if (flags.once) undo.push(() => rmSync(directory, { recursive: true, force: true }))
      const { password, path } = quickstartPassword(directory)
      const url = await this.#startServer(
        join(directory, 'server'),
        flags.port ?? (flags.once ? 0 : undefined),
        password,
        undo,
      )
      const { client, token } = await logIn(url, password)
      this.notice(`server at ${url}, data in ${directory}`)
      const host = await withSpinner('waiting for the agent', () =>
        this.#startAgent(client, join(directory, 'agent'), stop, undo),
      )
      this.notice(`agent on host ${host.hostname} is ${host.status}`)
      this.notice(`running on it: ${firstCommand}`)
      const task = await this.#runFirst(client, host)
      if (flags.once || stop.aborted) return task
      this.#sayNext({ url, token, directory }, host.hostname, path)
      await aborted(stop)
      this.notice('stopping')
      this.#sayCurrent()
      return task
    } catch (error) {
      if (!stop.aborted) throw error
      process.exitCode = 130
      return undefined
    } finally {
      for (const step of undo.reverse()) await step()
      endSoon()
    }
  }

  async #startServer(
    dataDir: string,
    port: number | undefined,
    adminPassword: string,
    undo: Undo,
  ): Promise<string> {
    const { startServer } = await import('../server/main.ts')
    const start = (port: number) =>
      startServer({
        host: '127.0.0.1',
        port,
        dataDir,
        adminPassword,
        heartbeatInterval: 30,
        metricsInterval: 60,
        wsIdleTimeout: 300,
        insecureHttp: false,
        logLevel: 'ERROR',
      })
    const server = await start(port ?? usualPort).catch((error: unknown) => {
      const taken =
        error instanceof RsmError && (error.cause as NodeJS.ErrnoException | undefined)?.code === 'EADDRINUSE'
      if (port !== undefined || !taken) throw error
      return start(0)
    })
    undo.push(() => server.close())
    return server.url
  }

  async #startAgent(client: Client, dataDir: string, signal: AbortSignal, undo: Undo): Promise<Host> {
    const known = await client.hosts.list({ size: 1 })
    const enrollToken =
      known.totalElements > 0 ? undefined : (await client.enrollments.create({ name: 'quickstart' })).token
    const { startAgent } = await import('../agent/main.ts')
    const agent = await startAgent({
      url: client.api.url,
      dataDir,
      enrollToken,
      allowRunAs: [],
      maxExecutions: 16,
      onDemand: false,
      drain: false,
      allowUnsigned: false,
      logLevel: 'ERROR',
      log: (_level, message) => this.notice(message),
      signal,
    })
    undo.push(() => agent.stop())
    const { hostId } = agent
    if (hostId === null) throw new RsmError('internal', 'the agent has no host')
    for (
      const since = performance.now();
      performance.now() - since < patience;
      await delay(pollInterval, undefined, { signal })
    ) {
      const host = await client.hosts.get(hostId)
      if (host.status !== 'OFFLINE' && agent.linked()) return host
    }
    throw new RsmError('unreachable', `the agent sent no heartbeat within ${patience / 1000} s`)
  }

  #runFirst(client: Client, host: Host) {
    const body = { script: { content: firstCommand }, target: { hostIds: [host.id] }, async: true }
    const show = {
      format: this.globals.json ? undefined : ('live' as const),
      files: [],
      diff: false,
      prefix: true,
      raw: false,
    }
    const options = { show, deadline: undefined, detach: false }
    return startTask(this, client, options, (key, signal) => client.tasks.create(body, key, signal))
  }

  /** Stores a context for the server, the current one if there is no other, and prints next steps. */
  #sayNext(
    { url, token, directory }: { url: string; token: string; directory: string },
    hostname: string,
    passwordFile: string,
  ): void {
    const contexts = new Contexts()
    const quickstart = resolve(directory)
    const choose = () => contexts.nameForQuickstart(quickstart)
    const name = contexts.save(choose, { url, username: 'admin', quickstart }, token, false)
    const option = contexts.list().current === name ? '' : ` --context ${name}`
    const rsm = ownCommand()
    this.print(`
It is up. In another terminal:

  ${rsm} hosts list${option}
  ${rsm} exec${option} -w ${hostname} -- df -h /
  ${rsm} terminal${option} ${hostname}

Or in a browser: ${url}
Other hosts cannot reach this server; for them: ${rsm} server start --host 0.0.0.0 --tls-self-signed

The password of user admin is in ${passwordFile}
Ctrl-C stops it; the next ${rsm} quickstart continues with the same data.`)
  }

  #sayCurrent(): void {
    const { current, contexts } = new Contexts().list()
    if (current !== null) this.notice(`the current context is ${current} (${contexts[current]?.url})`)
  }
}

async function logIn(url: string, password: string): Promise<{ client: Client; token: string }> {
  const { token } = await (await openClient({ url })).auth.login({ username: 'admin', password })
  return { client: await openClient({ url, token }), token }
}

/** Administrator's password of a quickstart; created once and stored in its data directory with mode 0600. */
function quickstartPassword(directory: string): { password: string; path: string } {
  makeNamedDirectory(directory, '--data-dir', 0o700)
  const path = join(directory, 'admin-password')
  try {
    return { password: readFileSync(path, 'utf8').trim(), path }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    const password = randomBytes(18).toString('base64url')
    writeFileSync(path, `${password}\n`, { mode: 0o600, flag: 'wx' })
    return { password, path }
  }
}
