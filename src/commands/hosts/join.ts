import { boolean, string } from '@oclif/core/flags'
import { BaseCommand } from '../../cli/command/base-command.ts'
import { unknownFields } from '../../cli/command/older-server.ts'
import { type FlagsOf, given, integer } from '../../cli/flags/checks.ts'
import { sshFlags, tagFlag } from '../../cli/flags/hosts.ts'
import { confirmRevocation } from '../../cli/hosts/revocation.ts'
import { parseLifetime, parsePairs } from '../../cli/input/values.ts'
import { findCluster, findHost } from '../../cli/names/names.ts'
import { showTime } from '../../cli/text/time.ts'
import type { Client } from '../../client/client.ts'
import { isLoopback, readJoin, readPin, runLine, showPin } from '../../core/endpoint.ts'
import { RsmError } from '../../core/errors.ts'
import type { EnrollmentCreate, EnrollmentCreated } from '../../core/protocol/http/agent.ts'

const flags = {
  replace: string({
    helpValue: 'HOST',
    description: 'enroll this host again and revoke its current agent',
  }),
  'max-uses': integer({
    min: 1,
    helpValue: 'N',
    description: 'number of hosts that the token enrolls (default: 1)',
  }),
  expires: string({ helpValue: 'TIME', description: 'lifetime of the token (default: 24h)' }),
  tag: tagFlag('tag of the hosts'),
  cluster: string({ char: 'g', helpValue: 'NAME', description: 'cluster of the hosts' }),
  token: boolean({ exclusive: ['ssh'], description: 'print only the token' }),
  'join-string': boolean({
    exclusive: ['ssh', 'token'],
    description: 'print only the join string, for rsm agent install',
  }),
  yes: boolean({ char: 'y', description: 'do not ask' }),
  ...sshFlags,
}
type JoinFlags = FlagsOf<typeof flags>

export default class HostsJoin extends BaseCommand {
  static override summary = 'Let hosts join: print the line to paste on them, or install them over ssh'
  static override description =
    'Creates an enrollment token and prints the line that installs rsm on a host. With --ssh, rsm runs your own ssh ' +
    '(with its configuration, agent and known_hosts) to copy the executable and a token to each host. It exits ' +
    'once the server confirms that the agents are linked.'
  static override examples = [
    '$ rsm hosts join -t role=web',
    '$ rsm hosts join --replace web1',
    "$ rsm hosts join --ssh 'web[01-20]' --ssh-user admin --sudo -t role=web",
    "$ rsm hosts join --ssh 'db[1-3]' -J bastion --ask-sudo-password --accept-new",
  ]
  static override flags = flags

  /** Retries without `url` and `fingerprint` if an older server rejects them as unknown. */
  async #make(client: Client, input: EnrollmentCreate) {
    try {
      return await client.enrollments.create(input)
    } catch (error) {
      const unknown = error instanceof RsmError ? unknownFields(error) : []
      if (unknown.length === 0 || unknown.some((field) => field !== 'url' && field !== 'fingerprint'))
        throw error
      const { url: _, fingerprint: __, ...rest } = input
      return client.enrollments.create(rest)
    }
  }

  async run() {
    const { flags } = await this.parse(HostsJoin)
    if (flags.ssh === undefined) this.#refuseWithoutSsh(flags)
    const client = await this.client()
    const input = await this.#enrollment(client, flags)
    if (flags.ssh !== undefined) {
      const { joinOverSsh } = await import('../../cli/ssh/join-hosts.ts')
      const { version } = this.config
      const made = (token: EnrollmentCreated) => this.#warn(token)
      return joinOverSsh(this, { client, enrollment: input, version, made }, { ...flags, ssh: flags.ssh })
    }
    return this.#printLine(client, input, flags)
  }

  /** Refuses options without effect, because the user relies on them. */
  #refuseWithoutSsh(flags: JoinFlags): void {
    const values: Readonly<Record<string, unknown>> = flags
    const lone = Object.keys(sshFlags).find((name) => values[name] !== undefined && values[name] !== false)
    if (lone !== undefined)
      throw new RsmError('usage', `--${lone} goes with --ssh`, { hint: "--ssh 'web[01-20]' names the hosts" })
  }

  async #enrollment(client: Client, flags: JoinFlags): Promise<EnrollmentCreate> {
    const { tlsFingerprint } = this.server()
    const fingerprint = tlsFingerprint === undefined ? undefined : showPin(readPin(tlsFingerprint))
    const input: EnrollmentCreate = given({ maxUses: flags['max-uses'], url: client.api.url, fingerprint })
    if (flags.expires !== undefined) input.expiresInHours = parseLifetime('--expires', flags.expires) / 3600
    if (flags.tag !== undefined) input.tags = parsePairs('-t', flags.tag, '-t role=web')
    if (flags.cluster !== undefined) input.clusterId = (await findCluster(client, flags.cluster)).id
    return input
  }

  async #printLine(client: Client, input: EnrollmentCreate, flags: JoinFlags) {
    const { fingerprint } = input
    const host = flags.replace === undefined ? undefined : await findHost(client, flags.replace)
    if (host !== undefined) input.hostId = host.id
    if (host?.agent) await confirmRevocation(host, flags.yes)
    const made = await this.#make(client, input)
    // Last, so that the host keeps its agent if the server refuses the token.
    if (host?.agent)
      await client.hosts.revokeAgent(host.id).catch(async (error: unknown) => {
        // Already revoked.
        if (error instanceof RsmError && error.code === 'not_found') return
        // Report the failed revocation. A token that cannot be removed is harmless: it was never shown, and expires.
        await client.enrollments.remove(made.id).catch(() => {})
        throw error
      })
    if (flags.token) {
      this.print(made.token)
      return made
    }
    if (flags['join-string']) {
      if (!made.join)
        throw new RsmError('usage', 'the server is too old to make a join string', {
          hint: 'rsm hosts join --token',
        })
      this.print(made.join)
      this.#warn(made)
      return made
    }
    const { url } = client.api
    const line = made.line ?? runLine({ url, token: made.token, ...given({ fingerprint }) })
    this.print(line)
    this.#warn(made)
    // Lines with install.sh fetch the server's executable.
    if (!line.includes('install.sh'))
      this.notice(
        'this line needs rsm on the host; for a host without it, first add an executable to the server: rsm server releases add FILE',
      )
    const until = showTime(made.expiresAt, this.globals.utc)
    if (!this.globals.json) this.notice(`run this line on the host before ${until}`)
    this.hint('then: rsm hosts list')
    return made
  }

  /** Warns about requirements of the host that a join string does not cover. */
  #warn({ join }: EnrollmentCreated): void {
    const { url, caFile, tlsFingerprint } = this.server()
    if (tlsFingerprint === undefined && caFile !== undefined)
      this.notice(
        `the host also needs the CA certificate: copy ${caFile} there and add --ca-file, or join with --tls-fingerprint`,
      )
    const named = new URL(join ? readJoin(join).url : url)
    if (isLoopback(named.hostname))
      this.notice(
        `this line works on this machine only (${named.host}); for other hosts: rsm server start --host 0.0.0.0 --tls-self-signed --public-url https://NAME:${named.port || 443}`,
      )
  }
}
