"""What kind of act a tool's name stands for, and whether the owner has asked for one of that kind.

A table of words, in the languages we can read: the first word of each row is what the act is called. A language that
is not in it costs questions, never safety.
"""

from __future__ import annotations

import re
from functools import cache

_KINDS = (
    # send something to somebody
    "send email mail reply forward write message tell notify respond answer dm inform text submit transmit"
    " schicke schick sende schreib schreibe antworte leite melde maile"
    " envoie envoyer écris écrire réponds transmets"
    " envía enviar manda mandar escribe escribir responde reenvía"
    " 发 寄 送 回复 转发 告诉 通知",
    # publish
    "post publish write send reply comment upload announce"
    " poste veröffentliche schreib kommentiere lade"
    " publie publier poster commente"
    " publica publicar comenta sube"
    " 发布 发表 上传 评论",
    # make something new
    "create make add schedule book set new arrange plan put append insert reserve open start generate register"
    " erstelle erstell mach leg lege plane trage trag buche füge"
    " crée créer ajoute ajouter planifie réserve mets"
    " crea crear añade añadir agrega programa reserva pon"
    " 创建 新建 添加 安排 预订 加",
    # destroy
    "delete remove cancel erase drop clear trash uninstall unsubscribe"
    " lösche lösch entferne storniere kündige sage"
    " supprime supprimer efface annule retire"
    " borra borrar elimina eliminar cancela quita"
    " 删除 删 移除 取消",
    # change
    "update change adjust set modify edit reschedule move rename replace correct fix rewrite"
    " ändere änder aktualisiere verschiebe passe korrigiere ersetze"
    " modifie modifier change mets déplace corrige"
    " cambia cambiar actualiza modifica mueve corrige"
    " 修改 更新 改 移动 更正",
    # move money, order goods
    "pay send transfer refund buy order purchase donate"
    " zahle bezahle überweise überweis kaufe bestelle erstatte"
    " paie payer vire virer rembourse achète commande"
    " paga pagar transfiere compra reembolsa pide"
    " 付 支付 转账 买 退款 订",
    # book
    "reserve book booking reservation buche buch reserviere réserve réserver reserva reservar 预订 预约 订",
    # let somebody in
    "invite add join include lade einladen füge invite inviter ajoute invita invitar añade 邀请 加",
    # give access
    "share grant give allow teile teil gib partage partager donne comparte compartir da 分享 共享",
    # run
    "run execute call invoke trigger launch deploy merge push commit"
    " führe starte"
    " lance exécute démarre"
    " ejecuta lanza"
    " 运行 执行 启动",
    # act in a page of the browser
    "click press type fill select browse browser"
    " klicke klick drücke tippe fülle wähle"
    " clique cliquer appuie tape remplis sélectionne"
    " haz clic pulsa escribe rellena selecciona"
    " 点击 点 填写 输入 选择 浏览器",
)
_ENDINGS = ("ing", "ed", "es", "s", "e")


def act_of(name: str) -> frozenset[str]:
    """The stems by which an owner asks for what a tool of this name does; of an unknown kind, the name's own words."""
    words = [_stem(word) for word in re.findall(r"[^\W\d_]+", _apart(name).lower())]
    kinds = [kind for kind in _kinds() for word in words[:1] if word in kind]
    if not kinds:
        kinds = [kind for kind in _kinds() for word in words if word in kind]
    if kinds:
        return frozenset(word for kind in kinds for word in kind)
    return frozenset(word for word in words if len(word) > 2)


def asked_for(act: frozenset[str], said: str) -> bool:
    """Whether `said`, in lower case, has one of the words of `act`."""
    words = {_stem(word) for word in re.findall(r"[^\W\d_]+", said)}
    return bool(act & words) or any(word in said for word in act if not word.isascii() and len(word) <= 2)


@cache
def _kinds() -> tuple[frozenset[str], ...]:
    return tuple(frozenset(_stem(word) for word in kind.split()) for kind in _KINDS)


def _stem(word: str) -> str:
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word


def _apart(name: str) -> str:
    """`createEvent` as two words."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name)
