import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { appendFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { ExecutionContext } from 'ava'
import { temporaryDirectory } from '../../fixtures/rsm.ts'
import { onSteadyPort } from '../servers/steady-port.ts'

/** Whether hosts behind an sshd can be started: requires root, mounts, OpenSSH client and server, and sudo. */
export const hasSshHosts =
  process.getuid?.() === 0 &&
  existsSync('/usr/sbin/sshd') &&
  ['ssh', 'sudo', 'setpriv'].every((program) => !spawnSync(program, ['-V']).error) &&
  spawnSync('unshare', ['--mount', '--uts', '--pid', '--fork', 'true']).status === 0

/** The password of the user `deploy` on each host. */
export const deployPassword = 'a password for sudo'

/** Setup of a host on which the agent is started as by systemd. */
export const managed = `mkdir -p /run/systemd/system
install -m 755 ${resolve('test/fixtures/systemctl.sh')} /usr/local/bin/systemctl
printf '#!/bin/sh\\ncat /run/rsm-agent.log\\n' > /usr/local/bin/journalctl
chmod 755 /usr/local/bin/journalctl`

interface HostOptions {
  /** Script that runs on the host before its sshd starts, as root. */
  readonly setup?: string
  /** Further lines of its entry in the ssh configuration. */
  readonly config?: readonly string[]
  /** Further lines of its sshd_config. */
  readonly sshd?: readonly string[]
  /** Whether known_hosts has its key. */
  readonly isKnown?: boolean
}

export interface SshHost {
  readonly port: number
  /** The log of its sshd. */
  log(): string
  stop(): Promise<void>
}

export interface SshHosts {
  /** First directory of the PATH: its `ssh` reads the configuration of these hosts in place of the user's. */
  readonly bin: string
  /** Holds NAME/host and NAME/host.pub, the keys of each host. */
  readonly directory: string
  readonly knownHosts: string
  /** Private key of root and deploy. */
  readonly key: string
  /** All arguments that this `ssh` ever got: every user of a machine can see them. */
  words(): string
  /** Starts a host with this name, also for ssh. Its users are root and deploy. */
  start(name: string, options?: HostOptions): Promise<SshHost>
  /** Adds an entry to the configuration, for names without a host. */
  configure(name: string, lines: readonly string[]): void
  /** Runs a script on a host as root, over the same ssh. */
  run(name: string, script: string, options?: readonly string[]): string
}

/** Hosts on this machine with files, a name and processes of their own. */
export function sshHosts(t: ExecutionContext): SshHosts {
  const directory = temporaryDirectory(t)
  const [config, knownHosts, key] = ['config', 'known_hosts', 'id'].map((name) => join(directory, name)) as [
    string,
    string,
    string,
  ]
  const words = join(directory, 'words')
  const keygen = (path: string) => execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', path])
  keygen(key)
  for (const file of [knownHosts, config, words]) writeFileSync(file, '')
  const bin = join(directory, 'bin')
  mkdirSync(bin)
  const real = execFileSync('sh', ['-c', 'command -v ssh'], { encoding: 'utf8' }).trim()
  writeFileSync(
    join(bin, 'ssh'),
    `#!/bin/sh\nprintf '%s\\n' "$@" >> ${words}\nexec ${real} -F ${config} "$@"\n`,
    { mode: 0o755 },
  )
  function configure(name: string, lines: readonly string[]): void {
    const all = [
      ...lines,
      'HostName 127.0.0.1',
      'User root',
      `IdentityFile ${key}`,
      'IdentitiesOnly yes',
      `UserKnownHostsFile ${knownHosts}`,
      'GlobalKnownHostsFile /dev/null',
    ]
    appendFileSync(config, [`Host ${name}`, ...all.map((line) => `  ${line}`), ''].join('\n'))
  }
  return {
    bin,
    directory,
    knownHosts,
    key,
    words: () => readFileSync(words, 'utf8'),
    configure,
    async start(name, { setup = '', config: lines = [], sshd = [], isKnown = true } = {}) {
      const own = join(directory, name)
      mkdirSync(own)
      keygen(join(own, 'host'))
      return onSteadyPort(async (port) => {
        const settings = [
          // sshd uses the first of two equal settings.
          ...sshd,
          `HostKey ${own}/host`,
          'AuthorizedKeysFile /etc/ssh/authorized',
          'StrictModes no',
          'UsePAM no',
          'PasswordAuthentication no',
          `ListenAddress 127.0.0.1:${port}`,
          'PidFile none',
        ]
        writeFileSync(join(own, 'sshd_config'), `${settings.join('\n')}\n`)
        writeFileSync(join(own, 'needed'), `${[directory, resolve('.'), process.execPath].join('\n')}\n`)
        const user = `useradd -m -s /bin/bash deploy\necho 'deploy:${deployPassword}' | chpasswd\n`
        writeFileSync(
          join(own, 'setup.sh'),
          `install -m 644 ${key}.pub /etc/ssh/authorized\n${user}${setup}\n`,
        )
        // A killed runner takes its hosts with it.
        const spaces = ['--mount', '--uts', '--pid', '--fork', '--kill-child']
        const held = [
          '--pdeathsig',
          'KILL',
          'unshare',
          ...spaces,
          'bash',
          resolve('test/fixtures/ssh-host.sh'),
        ]
        const host = spawn('setpriv', [...held, own, name], { stdio: ['ignore', 'ignore', 'pipe'] })
        const stop = async () => {
          host.kill('SIGKILL')
          if (host.exitCode === null && host.signalCode === null) await once(host, 'exit')
        }
        t.teardown(stop)
        let said = ''
        host.stderr.setEncoding('utf8').on('data', (text: string) => (said += text))
        while (!said.includes('Server listening')) {
          if (host.stderr.closed) throw new Error(`${name} does not start: ${said}`)
          await Promise.race([once(host.stderr, 'data'), once(host.stderr, 'close')])
        }
        if (isKnown)
          appendFileSync(
            knownHosts,
            `[127.0.0.1]:${port},${name} ${readFileSync(join(own, 'host.pub'), 'utf8')}`,
          )
        configure(name, [...lines, `Port ${port}`])
        return { port, log: () => said, stop }
      })
    },
    run: (name, script, options = []) =>
      execFileSync(join(bin, 'ssh'), ['-o', 'BatchMode=yes', '-l', 'root', ...options, name, script], {
        encoding: 'utf8',
      }),
  }
}
