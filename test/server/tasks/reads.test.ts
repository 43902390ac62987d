import test from 'ava'
import { shownTasksContract } from '../../contracts/shown-tasks.ts'
import { embeddedGround } from '../../helpers/servers/grounds.ts'

shownTasksContract(test, embeddedGround)
