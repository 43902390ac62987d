/**
 * Workflow commands of GitHub Actions, which a runner executes. `::name key=value::text` counts at the start
 * of a line, after any white space; `##[name]` anywhere in it (actions/runner, ActionCommand.cs).
 */

export function commandData(text: string): string {
  return text.replaceAll('%', '%25').replaceAll('\r', '%0D').replaceAll('\n', '%0A')
}

export function commandProperty(text: string): string {
  return commandData(text).replaceAll(':', '%3A').replaceAll(',', '%2C')
}

const opening = /^[^\p{L}\p{N}_]*?::/u

/**
 * Breaks commands in hosts' lines with a space. Runners' white space never includes letters, digits or `_`,
 * so only a `::` that none of these precedes is broken; one within a line, as in an address, is not.
 */
export function defuse(text: string): string {
  if (!text.includes('::') && !text.includes('##[')) return text
  return text
    .split('\n')
    .map((line) => line.replace(opening, (start) => `${start.slice(0, -1)} :`).replaceAll('##[', '## ['))
    .join('\n')
}
