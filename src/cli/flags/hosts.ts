import { boolean, string } from '@oclif/core/flags'
import { integer, repeated } from './checks.ts'

/** How hosts are named where a command takes one or more, in the words of help. */
export const hostsDescription = "hosts, like web1, 'web[1-3]' or @id:17"

/** `-w` also works where hosts are arguments, because other commands take it. */
export const hostsFlag = string({
  char: 'w',
  ...repeated,
  helpValue: 'SELECTOR',
  description: 'the same as SELECTOR',
})

export const tagFlag = (description: string) =>
  string({ char: 't', ...repeated, helpValue: 'KEY=VALUE', description })

const helpGroup = 'SSH'

/** How `hosts join` gets to hosts by itself. */
export const sshFlags = {
  ssh: string({
    helpGroup,
    helpValue: 'NODESET',
    exclusive: ['replace', 'max-uses'],
    description: "install and join these hosts by ssh, like 'web[01-20]'",
  }),
  'ssh-user': string({ helpGroup, helpValue: 'USER', description: 'log in as this user' }),
  jump: string({
    helpGroup,
    char: 'J',
    helpValue: 'JUMP',
    description: 'connect through this host, as ssh -J',
  }),
  sudo: boolean({
    helpGroup,
    exclusive: ['ask-sudo-password'],
    description: 'become root with sudo, without a password',
  }),
  'ask-sudo-password': boolean({
    helpGroup,
    description: 'ask once for the sudo password of these hosts',
  }),
  'accept-new': boolean({ helpGroup, description: 'trust the host keys of unknown hosts' }),
  prefix: string({
    helpGroup,
    helpValue: 'DIR',
    description: 'install into DIR/bin of the hosts (default: /usr/local)',
  }),
  concurrency: integer({
    helpGroup,
    char: 'f',
    min: 1,
    max: 256,
    helpValue: 'N',
    description: 'at most N hosts at once (default: 8)',
  }),
}
