import { boolean } from '@oclif/core/flags'

export const insecureStore = boolean({
  env: 'RSM_INSECURE_STORE',
  description: 'allow plain text to a PostgreSQL on another machine',
})
