import { removalCommand } from '../../cli/command/removal.ts'
import { findSchedule } from '../../cli/names/names.ts'

export default removalCommand({
  summary: 'Remove a schedule; its tasks stay',
  examples: ['$ rsm schedules remove nightly --yes'],
  arg: ['schedule', 'names of schedules'],
  noun: 'schedule',
  nameOf: ({ name }) => name,
  find: findSchedule,
  remove: (client, id) => client.schedules.remove(id),
})
