import { removalCommand } from '../../cli/command/removal.ts'
import { findScript } from '../../cli/names/names.ts'

export default removalCommand({
  summary: 'Remove a stored script; tasks keep the text that they ran',
  examples: ['$ rsm scripts remove deploy --yes'],
  arg: ['script', 'names of scripts'],
  noun: 'script',
  nameOf: ({ name }) => name,
  find: findScript,
  remove: (client, id) => client.scripts.remove(id),
})
