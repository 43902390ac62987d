import { boolean, string } from '@oclif/core/flags'
import { integer } from './checks.ts'

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
