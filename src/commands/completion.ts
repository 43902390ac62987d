import { LocalCommand } from '../cli/command/base-command.ts'
import { needed } from '../cli/flags/checks.ts'
import { RsmError } from '../core/errors.ts'

const scripts = {
  bash: async () => (await import('../cli/completion/shells.ts')).bashScript,
  zsh: async () => (await import('../cli/completion/shells.ts')).zshScript,
  fish: async () => (await import('../cli/completion/shells.ts')).fishScript,
}

export default class Completion extends LocalCommand {
  static override summary = 'Print the completion script of a shell'
  static override description = `For this shell only:
  bash        source <(rsm completion bash)
  zsh         source <(rsm completion zsh)
  fish        rsm completion fish | source
For all new shells:
  bash        rsm completion bash > ~/.local/share/bash-completion/completions/rsm, or the line above in ~/.bashrc
  zsh         rsm completion zsh > "\${fpath[1]}/_rsm", or the line above in ~/.zshrc
  fish        rsm completion fish > ~/.config/fish/completions/rsm.fish
Names come from the current server and are cached for 10 seconds in ~/.cache/rsm.`
  static override examples = [
    '$ source <(rsm completion bash)',
    '$ source <(rsm completion zsh)',
    '$ rsm completion fish | source',
    '$ rsm completion zsh > ~/.zfunc/_rsm',
    '$ rsm completion fish > ~/.config/fish/completions/rsm.fish',
  ]
  static override args = {
    shell: needed('bash, zsh or fish', { options: Object.keys(scripts) }),
  }

  async run() {
    const { args, flags } = await this.parse(Completion)
    if (flags.json) throw new RsmError('usage', 'a shell script is not JSON', { hint: 'leave out --json' })
    process.stdout.write(await scripts[args.shell as keyof typeof scripts]())
  }
}
