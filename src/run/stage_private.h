/*
 * stage_private.h - moving and removing what may be anybody's: nothing here follows a symbolic link.
 */
#pragma once

#include "base/base.h"

/* Removes NAME in DIR_FD with all that is in it, however deep; what is not there is removed. WHERE is for messages. */
int volume_remove(int dir_fd, const char *name, const char *where, struct err *err) _must_check_;
/*
 * Moves everything in DIR but lost+found and mount points to .previous, in place of what was there; with nothing to move
 * that stays. An interruption loses nothing: the next call goes on.
 */
int volume_set_aside(int dir_fd, const char *where, struct err *err) _must_check_;
